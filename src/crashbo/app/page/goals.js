// What a study is after: its cost, or several goals. A cost is a number, or one per goal by its name; what is expected of
// it, and its maps, likewise.

import { number, withUnit } from "./dom.js";

export const several = (study) => study.goals.length > 1;
export const part = (cost, goal) => (cost === null || cost === undefined ? undefined : typeof cost === "number" || Array.isArray(cost) ? cost : cost[goal.name]);
export const wanted = (study) => study.goals.map((g) => `${g.direction === "maximize" ? "highest" : "lowest"} ${g.label}`).join(" and ");
export const costWords = (cost, study) => study.goals.filter((g) => part(cost, g) !== undefined).map((g) => `${g.label} ${withUnit(number(part(cost, g)), g.unit)}`).join(", ");
export const fieldName = (goal) => (goal.name === "cost" ? "cost" : `c:${goal.name}`);
export const onFront = (state) => new Set(state.insight?.front?.trials ?? []);
