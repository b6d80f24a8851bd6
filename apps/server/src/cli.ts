import { existsSync } from 'node:fs'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

import type { CommandHost, StoreChoice } from '@signalbox/cli'

import type { LoadedConfig } from './config/load.ts'
import { VERSION } from './version.ts'

/** Options of commands that may come before the verb, such as `--url URL`. */
const BEFORE_VERB = /^--(?:url|api|token|context|ca-file|cert-file|key-file|json)(?:=|$)/

/** Runs the command that the first word names, or the server. Each loads only its own code. */
export async function run(args: readonly string[], env: Readonly<Record<string, string | undefined>>): Promise<void> {
  const [first = ''] = args
  if (args.length === 1 && (first === 'help' || first === 'version')) return run([`--${first}`], env)
  if (first === '' || (first.startsWith('-') && !BEFORE_VERB.test(first))) {
    const { runServer } = await import('./run-server.ts')
    await runServer(args, env)
    return
  }
  const { processIo, runCommand } = await import('@signalbox/cli')
  const code = await runCommand(args, processIo(env), commandHost)
  // The bridge of `signalbox mcp` sets a code itself.
  if (code !== 0) process.exitCode = code
}

/** The published package has a copy of `deploy/` in its `dist`; in the source tree the folder is at the root. */
const DEPLOY_FOLDERS = ['./deploy/', '../../../deploy/']

/** The parts of the server that commands need. */
export const commandHost: CommandHost = {
  version: VERSION,
  deployFolder: () =>
    DEPLOY_FOLDERS.map((path) => fileURLToPath(new URL(path, import.meta.url))).find((folder) => existsSync(folder)),
  yamlParser: async () => (await import('./files/yaml.ts')).parseYaml,
  policyParser: async () => (await import('./security/policy-file.ts')).policyParser(),
  async startServer(env, signal) {
    const [{ config, origins }, { startServer }] = await Promise.all([
      loadedConfig({ flags: [], env }),
      import('./server.ts'),
    ])
    return startServer(config, { origins, signal, env: process.env })
  },
  async backUpStore(store, file) {
    const { backUpStore } = await import('./engine/engines.ts')
    return backUpStore((await loadedConfig(store)).config, file)
  },
  async restoreStore(store, file) {
    const { restoreStore } = await import('./engine/engines.ts')
    return restoreStore((await loadedConfig(store)).config, file)
  },
  recoverStore: async (from, to) => (await import('./engine/engines.ts')).recoverStore(from, to),
}

async function loadedConfig({ flags, env }: StoreChoice): Promise<LoadedConfig> {
  const [{ loadConfig }, { fromFlags }] = await Promise.all([import('./config/load.ts'), import('./config/flags.ts')])
  return loadConfig({ flags: fromFlags(flags), env })
}
