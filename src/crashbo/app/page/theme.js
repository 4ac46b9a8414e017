// Light or dark: as the system says, until somebody chooses.

const KEY = "crashbo-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

export const preferred = () => localStorage.getItem(KEY) ?? (dark.matches ? "dark" : "light");

export function useTheme(onChange) {
  const apply = () => { document.documentElement.dataset.theme = preferred(); onChange(); };
  dark.addEventListener("change", apply);
  apply();
  return () => {
    localStorage.setItem(KEY, document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    apply();
  };
}
