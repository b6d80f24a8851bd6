import { ServerError } from '../errors.ts'
import { bridgeStandardStreams, endpointUrl } from '../mcp-bridge/standard-streams.ts'
import { readCommandLine } from './arguments.ts'
import { helpWanted } from './usage.ts'

/**
 * `signalbox mcp`: connects a host that starts local programs to a server. The token is in the environment variable
 * `SIGNALBOX_TOKEN`, because other users can read the command line of a process.
 * @throws ServerError CONFIG_INVALID
 */
export async function mcpCommand(args: readonly string[]): Promise<void> {
  if (helpWanted('mcp', args)) return
  const { option, positionals } = readCommandLine('mcp', args, { url: 'http://127.0.0.1:9090/mcp' })
  const url = endpointUrl(option('url'))
  const problems = positionals.map((extra) => `${JSON.stringify(extra)}: not an option`)
  if (typeof url === 'string') problems.push(`--url: ${url}`)
  if (problems.length > 0 || typeof url === 'string') {
    throw new ServerError(
      'CONFIG_INVALID',
      problems.map((problem) => `mcp: ${problem}`),
    )
  }
  await bridgeStandardStreams(url)
}
