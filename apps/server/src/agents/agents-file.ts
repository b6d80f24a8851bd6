import { isDeepStrictEqual } from 'node:util'

import type { JsonObject } from '@signalbox/http-kit'
import { watchFiles } from '@signalbox/http-kit'
import { isJsonObject } from '@signalbox/http-kit/internal'
import type { AgentRegistry, RegistryCaller } from '@signalbox/registry'
import { isAgentId } from '@signalbox/registry'

import { ServerError } from '../errors.ts'
import { parseYaml } from '../files/yaml.ts'
import type { Logger } from '../logging/logger.ts'

/** The owner of the agents in the file. */
const OPERATOR: RegistryCaller = { clientId: 'agents-file' }

const MAX_AGENTS = 1_000

/** The registrations under way at the same time. */
const AT_ONCE = 8

/** The time after which a registration that failed is tried again, in ms. */
const RETRY_MS = 10_000

export interface AgentsFileOptions {
  readonly lookMs?: number
  /** @default 10000 */
  readonly retryMs?: number
}

/**
 * Registers the agents in a file by the URLs of their cards, and removes those that are taken out of it. The file is read
 * again when it changes. An agent that cannot be registered, or that has expired, is tried again.
 * @throws ServerError CONFIG_INVALID
 */
export function openAgentsFile(
  file: string,
  registry: Pick<AgentRegistry, 'deregister' | 'list' | 'register'>,
  log: Logger,
  { lookMs, retryMs = RETRY_MS }: AgentsFileOptions = {},
): AsyncDisposable {
  /** The entries that this node has registered, by URL. */
  const done = new Map<string, JsonObject>()
  /** The last failure of each URL, so that each is logged once. */
  const failures = new Map<string, string>()
  let entries: readonly JsonObject[] = []
  const closed = new AbortController()
  let running = Promise.resolve()

  const register = async (entry: JsonObject): Promise<void> => {
    const url = urlOf(entry)
    try {
      const { agent_id: agentId } = await registry.register(entry, OPERATOR)
      done.set(url, entry)
      failures.delete(url)
      log.info({ file, agentId }, 'agent registered from the agents file')
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (failures.get(url) !== reason && !closed.signal.aborted)
        log.warn({ file, url, reason }, 'agent of the agents file not registered')
      failures.set(url, reason)
    }
  }
  const sync = async (): Promise<void> => {
    const wanted = new Set(entries.map(urlOf))
    const owned = registry.list().filter(({ registered_by: owner }) => owner === OPERATOR.clientId)
    const known = new Set(owned.map(urlOf))
    for (const card of owned) {
      if (wanted.has(urlOf(card)) || closed.signal.aborted) continue
      done.delete(urlOf(card))
      await registry
        .deregister(card.agent_id, OPERATOR)
        .catch((error: unknown) => log.warn({ err: error, file }, 'agent not removed'))
    }
    // Another node may have registered the agent; this one registers it again only after a change of its entry.
    const missing = entries.filter((entry) => {
      const before = done.get(urlOf(entry))
      if (!known.has(urlOf(entry))) return true
      if (before === undefined) done.set(urlOf(entry), entry)
      return before !== undefined && !isDeepStrictEqual(before, entry)
    })
    for (let at = 0; at < missing.length; at += AT_ONCE) {
      if (closed.signal.aborted) return
      await Promise.all(missing.slice(at, at + AT_ONCE).map(register))
    }
  }
  const syncNext = (): void => {
    running = running
      .then(() => (closed.signal.aborted ? undefined : sync()))
      .catch((error: unknown) => log.error({ err: error }, 'agents file failed'))
  }
  const watched = watching(file, () =>
    watchFiles([file], {
      parse: ([text = '']) => entriesIn(text),
      changed(value) {
        entries = value
        log.info({ file, agents: value.length }, 'agents file reloaded')
        syncNext()
      },
      refused: ({ message }) =>
        log.error({ file, reason: message }, 'agents file not reloaded: the previous one remains in force'),
      lookMs,
    }),
  )
  entries = watched.value
  syncNext()
  const timer = setInterval(syncNext, retryMs)
  timer.unref()
  return {
    async [Symbol.asyncDispose]() {
      closed.abort()
      clearInterval(timer)
      watched[Symbol.dispose]()
      await running
    },
  }
}

function urlOf({ agent_card_url: url }: JsonObject): string {
  return URL.parse(String(url))?.href ?? ''
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
  const { value } = parsed
  if (!Array.isArray(value) || value.length > MAX_AGENTS) {
    throw new RangeError(`it is not a list of at most ${MAX_AGENTS} agents`)
  }
  const entries = value.map((entry: unknown, index) => entryOf(entry, `agent ${index + 1}`))
  const urls = entries.map(urlOf)
  const twice = urls.find((url, index) => urls.indexOf(url) !== index)
  if (twice !== undefined) throw new RangeError(`the agent ${twice} is in it twice`)
  return entries
}

function entryOf(entry: unknown, name: string): JsonObject {
  if (!isJsonObject(entry)) throw new RangeError(`${name} is not an object with agent_card_url`)
  const { agent_card_url: url, agent_id: agentId, a2a, ...others } = entry
  if (typeof url !== 'string' || !/^https?:$/.test(URL.parse(url)?.protocol ?? '')) {
    throw new RangeError(`${name}: agent_card_url is not an http or https URL`)
  }
  if (agentId !== undefined && !(typeof agentId === 'string' && isAgentId(agentId))) {
    throw new RangeError(`${name}: agent_id is not valid; allowed: 2 to 128 lower-case letters, digits and hyphens`)
  }
  if (a2a !== undefined && !isJsonObject(a2a)) throw new RangeError(`${name}: a2a is not an object`)
  const [other] = Object.keys(others)
  if (other !== undefined) throw new RangeError(`${name}: ${other} is unknown; allowed: agent_card_url, agent_id, a2a`)
  return entry
}
