/** A result that cannot be translated, because it is not what its version of A2A defines. */
export class UntranslatableError extends Error {
  override readonly name = 'UntranslatableError'
}
