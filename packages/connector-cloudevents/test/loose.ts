/** JSON of any shape: tests look into what they expect, and fail where it is not there. */
// oxlint-disable-next-line typescript/no-explicit-any -- see above
export type Loose = any
