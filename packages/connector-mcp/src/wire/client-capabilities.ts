import type { JsonObject } from '@signalbox/http-kit'
import { isJsonObject, JsonRpcError } from '@signalbox/http-kit'

import { MCP_CODES } from './codes.ts'
import { declaresEvents } from './events-profile.ts'

/** The extension of calls that continue as tasks. */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks'

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
