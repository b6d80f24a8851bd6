import type { TObject, TSchema } from 'typebox'

import type { Role } from './authentication/authenticator.ts'

/** A route of either listener, as described in the OpenAPI document. */
export interface DocumentedRoute {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** The path, with `{name}` for each parameter. */
  readonly path: string
  readonly listener: 'shared' | 'management'
  /** A word that groups routes, such as `Statistics`. */
  readonly tag: string
  readonly summary: string
  /** True if the route needs no token. @default false */
  readonly isPublic?: boolean
  /** The role that the route requires, on the management listener. */
  readonly role?: Role
  /** Schemas by the parameter names in the path. */
  readonly parameters?: Readonly<Record<string, TSchema>>
  readonly query?: TObject
  /** The headers of the request. */
  readonly headers?: TObject | undefined
  readonly body?: { readonly mediaType: string; readonly schema?: TSchema; readonly description?: string }
  /** By HTTP status. */
  readonly responses: Readonly<Record<string, DocumentedResponse>>
}

export interface DocumentedResponse {
  readonly description: string
  /** @default 'application/json', if there is a schema */
  readonly mediaType?: string
  readonly schema?: TSchema
  /** The schema of a second form of the answer: server-sent events. @default none */
  readonly events?: TSchema
}
