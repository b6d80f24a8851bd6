import type { DocumentedResponse, DocumentedRoute } from '@signalbox/http-kit/internal'
import type { TObject, TSchema } from 'typebox'

/** JSON of any shape. */
type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }

type JsonObject = { readonly [key: string]: Json }

export interface DocumentInfo {
  readonly version: string
  /** The addresses of the two listeners, if known. */
  readonly servers?: Readonly<Partial<Record<DocumentedRoute['listener'], string>>>
}

const SERVER_DESCRIPTIONS: Readonly<Record<DocumentedRoute['listener'], string>> = {
  shared: 'The shared listener, for tools, agents and applications.',
  management: 'The management listener, for operators.',
}

/** The default addresses. */
const DEFAULT_SERVERS: Readonly<Record<DocumentedRoute['listener'], string>> = {
  shared: 'http://127.0.0.1:9090',
  management: 'http://127.0.0.1:8080',
}

/**
 * Returns the OpenAPI 3.1 document of the given routes. JSON-RPC endpoints are not REST routes, so
 * they are not in it.
 */
export function openApiDocument(
  routes: readonly DocumentedRoute[],
  { version, servers = {} }: DocumentInfo,
): JsonObject {
  const paths: Record<string, Record<string, Json>> = {}
  for (const route of routes) {
    const operations = (paths[route.path] ??= {})
    const method = route.method.toLowerCase()
    // Both listeners have the probes: one entry describes both.
    if (operations[method] !== undefined) continue
    const url = servers[route.listener] ?? DEFAULT_SERVERS[route.listener]
    operations[method] = operation(route, url)
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Signalbox',
      version,
      summary: 'A message broker for AI tools and agents.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } } },
  }
}

function operation(route: DocumentedRoute, url: string): Json {
  const { method, path, listener, tag, summary, isPublic = false, role, parameters = {}, query, headers, body } = route
  const description = role === undefined ? {} : { description: `Needs the role ${role}.` }
  return {
    operationId: operationId(method, path),
    tags: [tag],
    summary,
    ...description,
    servers: [{ url, description: SERVER_DESCRIPTIONS[listener] }],
    // Authentication is off by default, so a token is optional.
    security: isPublic ? [] : [{}, { bearer: [] }],
    parameters: [
      ...Object.entries(parameters).map(([name, schema]) => parameter(name, 'path', true, schema)),
      ...(query === undefined ? [] : parametersOf(query, 'query')),
      ...(headers === undefined ? [] : parametersOf(headers, 'header')),
    ],
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            ...(body.description === undefined ? {} : { description: body.description }),
            content: { [body.mediaType]: body.schema === undefined ? {} : { schema: plain(body.schema) } },
          },
        }),
    responses: Object.fromEntries(
      Object.entries(route.responses).map(([status, response]) => [status, responseObject(response)]),
    ),
  }
}

function operationId(method: string, path: string): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => word !== '')
  return [method.toLowerCase(), ...words].join('_')
}

function parametersOf(schemas: TObject, place: 'query' | 'header'): readonly Json[] {
  // TypeBox omits the keyword if no property is required, although its type says otherwise.
  const required: readonly string[] = schemas.required ?? []
  return Object.entries(schemas.properties).map(([name, schema]) =>
    parameter(name, place, required.includes(name), schema),
  )
}

function parameter(name: string, place: 'path' | 'query' | 'header', required: boolean, schema: TSchema): Json {
  const { description, ...rest } = plainObject(schema)
  return { name, in: place, required, ...(description === undefined ? {} : { description }), schema: rest }
}

function responseObject({ description, events, mediaType = 'application/json', schema }: DocumentedResponse): Json {
  if (schema === undefined) return { description }
  const stream = events === undefined ? {} : { 'text/event-stream': { schema: plain(events) } }
  return { description, content: { [mediaType]: { schema: plain(schema) }, ...stream } }
}

function plainObject(schema: TSchema): JsonObject {
  const json = plain(schema)
  return isObject(json) ? json : {}
}

function isObject(json: Json): json is JsonObject {
  return typeof json === 'object' && json !== null && !Array.isArray(json)
}

/** Converts a schema to JSON Schema, without the keys that only TypeBox understands. */
function plain(value: unknown): Json {
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(
      Object.entries(value)
        .filter(([key, part]) => !key.startsWith('~') && part !== undefined)
        .map(([key, part]) => [key, plain(part)]),
    )
  }
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null
}
