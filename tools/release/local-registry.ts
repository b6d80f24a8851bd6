import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import type { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import { firstLine, ordinaryEnvironment, run, start } from './environment.ts'

/**
 * Installed into the temporary folder, not into the workspace: it has 321 packages and 65 MB for this purpose only. Its
 * audit plug-in requires node-fetch by the tag `cjs`, which mirrors do not have.
 */
const MANIFEST = {
  private: true,
  type: 'module',
  dependencies: { verdaccio: '6.10.4' },
  overrides: { 'node-fetch': '2.7.0' },
}

/** Signalbox packages come from this registry only; all others from the configured one. */
function configuration(storage: string, uplink: string): string {
  const own = `    access: $all\n    publish: $all\n    unpublish: $all\n`
  return `storage: ${JSON.stringify(storage)}
uplinks:
  configured:
    url: ${JSON.stringify(uplink)}
    timeout: 60s
packages:
  '@signalbox/*':
${own}  'signalbox':
${own}  '**':
    access: $all
    proxy: configured
log: { type: stdout, format: json, level: error }
max_body_size: 20mb
`
}

/** Starts an empty registry on a free port of the loopback interface; it ends with the rehearsal. Returns its URL. */
export async function startLocalRegistry(folder: TemporaryFolder, uplink: string): Promise<string> {
  const cwd = folder.join('registry')
  mkdirSync(cwd)
  writeFileSync(join(cwd, 'package.json'), JSON.stringify(MANIFEST))
  writeFileSync(join(cwd, 'config.yaml'), configuration(folder.join('registry-storage'), uplink))
  cpSync(join(import.meta.dirname, 'verdaccio-server.mjs'), join(cwd, 'server.mjs'))
  const env = ordinaryEnvironment()
  await run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'], { cwd, env })
  const child = start(process.execPath, ['server.mjs'], { cwd, env })
  return firstLine(child, (line) => {
    const port = /^port (\d+)$/.exec(line)?.[1]
    return port === undefined ? undefined : `http://127.0.0.1:${port}/`
  })
}
