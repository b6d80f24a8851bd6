import type { JsonObject } from '@signalbox/http-kit'
import { JsonRpcError } from '@signalbox/http-kit'
import { isJsonObject } from '@signalbox/http-kit/internal'

import { MCP_CODES } from './2026-07-28.ts'
import { declaresEvents, eventsCapabilities } from './events-profile.ts'
import { STATELESS_REVISION, SUPPORTED_VERSIONS } from './revisions.ts'

/** The extension of calls that continue as tasks. */
const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks'

/** The members of a client's capabilities that this server uses. */
export interface ClientCapabilities {
  /** `true` if the client understands tasks. */
  readonly tasks: boolean
  /** `true` if the client shows forms to its user. */
  readonly forms: boolean
  /** `true` if the client declares the extension of events. */
  readonly events: boolean
}

/** Returns the capabilities that a request declares. */
export function readCapabilities(capabilities: unknown): ClientCapabilities {
  const declared = isJsonObject(capabilities) ? capabilities : {}
  const { extensions, elicitation } = declared
  return {
    tasks: isJsonObject(extensions) && isJsonObject(extensions[TASKS_EXTENSION]),
    forms: isJsonObject(elicitation) && hasForms(elicitation),
    events: declaresEvents(declared),
  }
}

/** Clients that name no mode show forms. */
function hasForms({ form, url }: JsonObject): boolean {
  return form !== undefined || url === undefined
}

/** Returns the error for a request that only a client with tasks may send. */
export function tasksRequired(method: string): JsonRpcError {
  return new JsonRpcError(
    MCP_CODES.MISSING_CLIENT_CAPABILITY,
    `${method}: the client capability extensions[${JSON.stringify(TASKS_EXTENSION)}] is missing; declare it in _meta of each request`,
    { data: { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } } },
  )
}

/**
 * Returns the members of the result of `server/discover`, as JSON text without the braces.
 * @param instructions A description of the server for models
 * @param offered.tasks `true` if calls can become tasks
 * @param offered.events `true` if clients can subscribe to events
 */
export function discovery(
  instructions: string,
  offered: { readonly tasks: boolean; readonly events: boolean },
): string {
  const { key, extensions } = offered.events ? eventsCapabilities() : { key: {}, extensions: {} }
  const all = { ...(offered.tasks ? { [TASKS_EXTENSION]: {} } : {}), ...extensions }
  const capabilities = { tools: {}, ...key, ...(Object.keys(all).length === 0 ? {} : { extensions: all }) }
  return (
    `"supportedVersions":${JSON.stringify(SUPPORTED_VERSIONS)},"capabilities":${JSON.stringify(capabilities)},` +
    `"instructions":${JSON.stringify(instructions)}${STATELESS_REVISION.cacheHints('public')}`
  )
}
