import type { Role } from '@signalbox/http-kit'
import type { TObject, TSchema } from 'typebox'

/** What the OpenAPI document says of a route, of this listener or of the shared one. */
export interface DocumentedRoute {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** With `{name}` for what varies. */
  readonly path: string
  readonly listener: 'shared' | 'management'
  /** A word that groups routes, such as `Statistics`. */
  readonly tag: string
  readonly summary: string
  /** Nobody needs a token for it. @default false */
  readonly isPublic?: boolean
  /** The role that it needs, on the management listener. */
  readonly role?: Role
  /** By the names in the path. */
  readonly parameters?: Readonly<Record<string, TSchema>>
  readonly query?: TObject
  readonly body?: { readonly mediaType: string; readonly schema?: TSchema; readonly description?: string }
  /** By HTTP status. */
  readonly responses: Readonly<Record<string, DocumentedResponse>>
}

export interface DocumentedResponse {
  readonly description: string
  /** @default 'application/json', where there is a schema */
  readonly mediaType?: string
  readonly schema?: TSchema
}
