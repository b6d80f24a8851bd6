import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { run } from './command.ts'
import { ordinaryEnvironment } from './environment.ts'

/** npm's package of Node for this machine. */
export function nodePackage(platform: string = process.platform, arch: string = process.arch): string {
  return `node-${platform === 'win32' ? 'win' : platform}-${arch}`
}

function older(a: string, b: string): number {
  const [x, y] = [a.split('.').map(Number), b.split('.').map(Number)]
  return (x[0] ?? 0) - (y[0] ?? 0) || (x[1] ?? 0) - (y[1] ?? 0) || (x[2] ?? 0) - (y[2] ?? 0)
}

/** Returns the newest version that begins with each of the given prefixes, such as 24 or 22.19. */
export function newestOf(prefixes: readonly string[], available: readonly string[]): readonly string[] {
  return prefixes.map((prefix) => {
    const newest = available
      .filter((version) => version === prefix || version.startsWith(`${prefix}.`))
      .sort(older)
      .at(-1)
    if (newest === undefined) throw new Error(`There is no ${nodePackage()} ${prefix}. Choose one that npm has.`)
    return newest
  })
}

/** The oldest Node that the published packages support, from their `engines`. */
export function oldestSupported(workspace: string): string {
  const { engines } = JSON.parse(readFileSync(join(workspace, 'apps/server/package.json'), 'utf8')) as {
    engines: { node: string }
  }
  return engines.node.replace('>=', '')
}

/** The Node versions to run on: the oldest supported, and the newest of each line. */
export async function nodeVersions(workspace: string, lines: readonly string[]): Promise<readonly string[]> {
  const options = { cwd: workspace, env: ordinaryEnvironment() }
  const available = JSON.parse(await run('npm', ['view', nodePackage(), 'versions', '--json'], options)) as string[]
  return [...new Set(newestOf(lines, available))]
}
