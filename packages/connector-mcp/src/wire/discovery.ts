import { STATELESS_REVISION, SUPPORTED_VERSIONS } from './revisions.ts'

/**
 * Returns the members of the result of `server/discover`, as JSON text without the braces.
 * @param instructions A description of the server for models
 */
export function discovery(instructions: string): string {
  return (
    `"supportedVersions":${JSON.stringify(SUPPORTED_VERSIONS)},"capabilities":{"tools":{}},` +
    `"instructions":${JSON.stringify(instructions)}${STATELESS_REVISION.cacheHints('public')}`
  )
}
