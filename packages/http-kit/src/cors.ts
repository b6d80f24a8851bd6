/** CORS settings by the names of the specification's table. */
export interface CorsSettings {
  /** `*`, or origins compared exactly. */
  readonly allowOrigins: readonly string[]
  readonly allowMethods: readonly string[]
  readonly allowHeaders: readonly string[]
  readonly exposeHeaders: readonly string[]
  readonly allowCredentials: boolean
  /** Seconds a browser keeps the answer to a preflight. */
  readonly maxAge: number
}

/** Specification, "CORS". */
export const CORS_DEFAULTS: CorsSettings = {
  allowOrigins: ['*'],
  allowMethods: ['GET', 'POST', 'DELETE', 'OPTIONS'],
  allowHeaders: ['Authorization', 'Content-Type', 'MCP-Protocol-Version', 'MCP-Session-Id', 'Last-Event-ID', 'Accept'],
  exposeHeaders: ['MCP-Session-Id', 'MCP-Protocol-Version'],
  allowCredentials: false,
  maxAge: 86_400,
}

/** The options of `@fastify/cors` that say the same. */
export interface FastifyCorsOptions {
  readonly origin: string | string[]
  readonly methods: string[]
  readonly allowedHeaders: string[]
  readonly exposedHeaders: string[]
  readonly credentials: boolean
  readonly maxAge: number
  /** Any OPTIONS request is answered, one that is not quite a preflight as well. */
  readonly strictPreflight: false
}

/**
 * Turns the settings into options for `app.register(cors, …)`: preflights are then answered before any connector runs,
 * and a list of origins brings `Vary: Origin`.
 * @throws RangeError for credentials together with `*`, which browsers refuse
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
