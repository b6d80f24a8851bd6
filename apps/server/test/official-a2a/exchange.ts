/** One call of a client in this process, and all bytes of its answer as text. */
export interface Exchange {
  readonly url: string
  readonly method: string
  /** Empty for a request without a body. */
  readonly request: string
  readonly status: number
  readonly contentType: string
  /** Rejects if the client left before the end. */
  readonly answer: Promise<string>
}
