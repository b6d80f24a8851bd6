import type { Config } from '../config/schema.ts'

/** Returns the lines that a person at a terminal sees when the server is ready. */
export function welcomeText(
  { connectors, console }: Pick<Config, 'connectors' | 'console'>,
  http: string,
  api: string,
): string {
  return [
    connectors.mcp.enable ? `tools for models   ${http}/mcp` : `applications       ${http}`,
    console.enable ? `console            ${api}/console/` : `management API     ${api}/api/snapshot`,
    'documentation      https://github.com/signalbox/signalbox/tree/main/docs',
    '',
  ].join('\n')
}
