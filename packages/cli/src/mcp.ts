import type { CommandCall } from './command.ts'
import { tlsOf } from './connection.ts'
import { CommandError } from './errors.ts'
import { bridgeStandardStreams, endpointUrl } from './mcp-bridge/standard-streams.ts'

/**
 * `signalbox mcp`: connects a host that starts local programs to a server. The token is in the environment variable
 * `SIGNALBOX_TOKEN`, because other users can read the command line of a process.
 * @throws CommandError CONFIG_INVALID
 */
export async function mcpCommand(call: CommandCall): Promise<void> {
  const url = endpointUrl(call.line.option('url'))
  if (typeof url === 'string') throw new CommandError('CONFIG_INVALID', [`mcp: --url: ${url}`])
  const { tls } = await tlsOf(call)
  await bridgeStandardStreams(url, tls)
}
