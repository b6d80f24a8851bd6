import { TASKS_EXTENSION } from './client-capabilities.ts'
import { STATELESS_REVISION, SUPPORTED_VERSIONS } from './revisions.ts'

/**
 * Returns the members of the result of `server/discover`, as JSON text without the braces.
 * @param instructions A description of the server for models
 * @param tasks `true` if calls can become tasks
 */
export function discovery(instructions: string, tasks: boolean): string {
  const capabilities = { tools: {}, ...(tasks ? { extensions: { [TASKS_EXTENSION]: {} } } : {}) }
  return (
    `"supportedVersions":${JSON.stringify(SUPPORTED_VERSIONS)},"capabilities":${JSON.stringify(capabilities)},` +
    `"instructions":${JSON.stringify(instructions)}${STATELESS_REVISION.cacheHints('public')}`
  )
}
