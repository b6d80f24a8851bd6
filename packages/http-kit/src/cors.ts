/** CORS settings, named as in the specification's table. */
export interface CorsSettings {
  /** `*`, or origins that are compared exactly. */
  readonly allowOrigins: readonly string[]
  readonly allowMethods: readonly string[]
  readonly allowHeaders: readonly string[]
  readonly exposeHeaders: readonly string[]
  readonly allowCredentials: boolean
  /** Time that a browser caches the answer to a preflight, in seconds. */
  readonly maxAge: number
}

/** The defaults of the specification ("CORS"). */
export const CORS_DEFAULTS: CorsSettings = {
  allowOrigins: ['*'],
  allowMethods: ['GET', 'POST', 'DELETE', 'OPTIONS'],
  allowHeaders: ['Authorization', 'Content-Type', 'MCP-Protocol-Version', 'MCP-Session-Id', 'Last-Event-ID', 'Accept'],
  exposeHeaders: ['MCP-Session-Id', 'MCP-Protocol-Version'],
  allowCredentials: false,
  maxAge: 86_400,
}

/** The same settings as options of `@fastify/cors`. */
export interface FastifyCorsOptions {
  readonly origin: string | string[]
  readonly methods: string[]
  readonly allowedHeaders: string[]
  readonly exposedHeaders: string[]
  readonly credentials: boolean
  readonly maxAge: number
  /** Answers every OPTIONS request, also one that is not a complete preflight. */
  readonly strictPreflight: false
}

/**
 * Converts the settings to options for `app.register(cors, …)`. Preflights are then answered before any connector
 * runs, and a list of origins adds `Vary: Origin`.
 * @throws RangeError for credentials together with `*`, which browsers reject
 */
export function fastifyCorsOptions(settings: CorsSettings = CORS_DEFAULTS): FastifyCorsOptions {
  const any = settings.allowOrigins.includes('*')
  if (any && settings.allowCredentials) {
    throw new RangeError('CORS: credentials cannot be allowed for every origin; list the origins')
  }
  return {
    origin: any ? '*' : [...settings.allowOrigins],
    methods: [...settings.allowMethods],
    allowedHeaders: [...settings.allowHeaders],
    exposedHeaders: [...settings.exposeHeaders],
    credentials: settings.allowCredentials,
    maxAge: settings.maxAge,
    strictPreflight: false,
  }
}
