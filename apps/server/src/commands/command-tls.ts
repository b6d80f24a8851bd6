import type { Fetch } from '@signalbox/client'

import type { ClientTls } from '../tls/client-tls.ts'
import { ServerError } from '../errors.ts'
import type { CommandCall } from './command.ts'
import type { Context } from './contexts.ts'

/** The TLS of a command's connections to a URL, and a `fetch` that uses it. */
export interface CommandTls {
  readonly tls: ClientTls | undefined
  readonly fetch: Fetch
}

/**
 * Reads the TLS of a command. Options take precedence over the environment, and both over the context.
 * @throws ServerError CONFIG_INVALID for files that cannot be used
 */
export async function tlsOf({ line, io: { env } }: CommandCall, context?: Context): Promise<CommandTls> {
  const files = {
    caFile: line.value('ca-file') || env['SIGNALBOX_CA_FILE'] || context?.caFile,
    certFile: line.value('cert-file') || env['SIGNALBOX_CERT_FILE'] || context?.certFile,
    keyFile: line.value('key-file') || env['SIGNALBOX_KEY_FILE'] || context?.keyFile,
  }
  if (!files.caFile && !files.certFile && !files.keyFile) return { tls: undefined, fetch: (...call) => fetch(...call) }
  // Loaded only now: most commands need no files.
  const [{ readClientTls }, { fetchWith }] = await Promise.all([
    import('../tls/client-tls.ts'),
    import('./tls-fetch.ts'),
  ])
  try {
    const tls = readClientTls(files)
    return { tls, fetch: fetchWith(tls) }
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    throw new ServerError('CONFIG_INVALID', [`${line.command}: ${problem}`], { cause: error })
  }
}
