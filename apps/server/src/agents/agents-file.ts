import { watchFiles } from '@signalbox/http-kit'
import type { JsonObject } from '@signalbox/http-kit'
import { ListedAgents, readListedAgents } from '@signalbox/registry'
import type { AgentRegistry } from '@signalbox/registry'

import { ServerError } from '../errors.ts'
import { parseYaml } from '../files/yaml.ts'
import type { Logger } from '../logging/logger.ts'

export interface AgentsFileOptions {
  readonly lookMs?: number
  /** @default 10000 */
  readonly retryMs?: number
}

/**
 * Registers the agents in a file, and removes those that are taken out of it. The file is read again when it changes.
 * @throws ServerError CONFIG_INVALID
 */
export function openAgentsFile(
  file: string,
  registry: Pick<AgentRegistry, 'deregister' | 'list' | 'register'>,
  log: Logger,
  { lookMs, retryMs }: AgentsFileOptions = {},
): AsyncDisposable {
  const watched = watching(file, () =>
    watchFiles([file], {
      parse: ([text = '']) => entriesIn(text),
      changed(entries) {
        log.info({ file, agents: entries.length }, 'agents file reloaded')
        agents.replace(entries)
      },
      refused: ({ message }) =>
        log.error({ file, reason: message }, 'agents file not reloaded: the previous one remains in force'),
      lookMs,
    }),
  )
  const events = {
    registered: (agentId: string) => log.info({ file, agentId }, 'agent registered from the agents file'),
    refused: (url: string, reason: string) =>
      log.warn({ file, url, reason }, 'agent of the agents file not registered'),
    notRemoved: (error: unknown) => log.warn({ err: error, file }, 'agent not removed'),
    failed: (error: unknown) => log.error({ err: error }, 'agents file failed'),
  }
  const agents = new ListedAgents(registry, watched.value, events, retryMs)
  return {
    async [Symbol.asyncDispose]() {
      watched[Symbol.dispose]()
      await agents[Symbol.asyncDispose]()
    },
  }
}

function watching<T>(file: string, open: () => T): T {
  try {
    return open()
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new ServerError('CONFIG_INVALID', [`agentsFile: ${file}: ${reason}`], { cause: error })
  }
}

/** @throws RangeError */
function entriesIn(text: string): readonly JsonObject[] {
  const parsed = parseYaml(text)
  if ('problem' in parsed) throw new RangeError(`it is neither YAML nor JSON: ${parsed.problem}`)
  return readListedAgents(parsed.value)
}
