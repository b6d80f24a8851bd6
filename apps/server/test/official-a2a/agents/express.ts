/** Express's own name for a middleware; the package has no types here. */
export type Middleware = (...args: never[]) => unknown

/** The part of an Express application that the agents use. */
export interface Application {
  use: (path: string, ...middlewares: readonly Middleware[]) => void
}

interface Request {
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly method: string
  readonly body: unknown
}

interface Response {
  readonly json: (value: unknown) => void
}

/** A middleware with the types of the test's own. */
export type Handler = (request: Request, response: Response, next: () => void) => void

interface Express {
  (): Application
  json: () => Middleware
}

/** The peer of the SDKs. It brings no types of its own, so the compiler must not look. */
const NAME: string = 'express'

/** Loads Express. */
export async function loadExpress(): Promise<Express> {
  const { default: express } = (await import(NAME)) as { default: Express }
  return express
}
