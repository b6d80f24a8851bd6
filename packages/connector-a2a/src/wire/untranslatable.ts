/** A value that cannot be translated, because it is not what its version of A2A defines. The message names the member. */
export class UntranslatableError extends Error {
  override readonly name = 'UntranslatableError'
}
