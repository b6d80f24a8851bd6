import { TASKS_EXTENSION } from './client-capabilities.ts'
import { eventsCapabilities } from './events-profile.ts'
import { STATELESS_REVISION, SUPPORTED_VERSIONS } from './revisions.ts'

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
