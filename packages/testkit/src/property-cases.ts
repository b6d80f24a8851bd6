const SHARE = 5
const FEW = 20

/**
 * Returns how many cases of a property a run checks: a fifth of all, and at least 20. With `PROPERTY_CASES=all`, as in
 * the nightly run, it checks all. Use it with a fixed seed: the cases are then the first ones of the full run.
 */
export function cases(all: number): number {
  return process.env['PROPERTY_CASES'] === 'all' ? all : Math.min(all, Math.max(FEW, Math.ceil(all / SHARE)))
}
