import { homedir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'

/**
 * Returns the folder for compiled code, which speeds up the next start: the first one that systemd
 * created for the service, or one in the user's own cache; undefined for a user without a home. The
 * process runs the cached code: in Node's default, the temporary folder, another user could put
 * code there.
 */
export function compileCacheFolder(): string | undefined {
  const { CACHE_DIRECTORY = '', XDG_CACHE_HOME = '' } = process.env
  const [ofService = ''] = CACHE_DIRECTORY.split(':')
  if (ofService !== '') return ofService
  if (XDG_CACHE_HOME !== '') return join(XDG_CACHE_HOME, 'signalbox')
  try {
    return join(homedir(), '.cache', 'signalbox')
  } catch {
    return undefined
  }
}
