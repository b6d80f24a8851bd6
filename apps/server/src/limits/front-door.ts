import { isDeepStrictEqual } from 'node:util'

import type { Caller, LimitsOfCaller } from '@signalbox/broker-core'
import type { FrontDoor, LimitEvent } from '@signalbox/http-kit'
import { AdmissionControl, TrustedProxies, watchFiles } from '@signalbox/http-kit'
import { ANONYMOUS_ACCOUNT, half, Refusals } from '@signalbox/http-kit/internal'
import type { RegistryCaller } from '@signalbox/registry'
import { agentShares } from '@signalbox/registry'

import type { Config } from '../config/schema.ts'
import { ServerError } from '../errors.ts'
import type { Logger } from '../logging/logger.ts'
import type { LimitMetrics } from './limit-metrics.ts'

/**
 * The state that both listeners share: limits of callers and of the process, trusted proxies, host
 * names of the server.
 */
export interface ServerFrontDoor
  extends Required<Omit<FrontDoor, 'publicHost' | 'stalledReaderMs'>>, Pick<FrontDoor, 'publicHost'>, Disposable {
  /** The limits in force. */
  readonly limits: Config['limits']
  /** Replaces the limits for new requests. Requests under way are not affected. */
  readonly setLimits: (limits: Config['limits']) => void
  /** Returns a caller's limits in the broker. */
  readonly limitsOf: (caller: Caller) => LimitsOfCaller
  /** Returns the most agents that a caller may own; 0 means no limit. */
  readonly maxAgentsOf: (caller: RegistryCaller) => number
  /** Returns the most tasks that a caller may have; 0 means no limit. */
  readonly maxTasksOf: (caller: Caller) => number
  /**
   * Counts and logs a refusal by a limit that another component checks, such as the limit of
   * channels.
   */
  readonly refused: (limit: string, account: string) => void
}

/**
 * Opens the front door. Each refusal by a limit is counted, and logged once for a caller, a limit
 * and a minute.
 */
export function openFrontDoor(config: Config, metrics: LimitMetrics, log: Logger): ServerFrontDoor {
  const refusals = new Refusals(({ address: caller, count, reason: limit }) =>
    log.warn({ caller, limit, count }, 'requests refused: limit reached'),
  )
  const refused = (limit: string, account: string): void => {
    metrics.refused(limit)
    refusals.add(account, limit)
  }
  const admission = new AdmissionControl({
    limits: config.limits,
    onLimit: ({ limit, account }: LimitEvent) => refused(limit, account),
  })
  metrics.watch(admission)
  let { limits } = config
  const { maxAgents } = config.connectors.a2a
  return {
    limitsOf({ account }) {
      const { channels, waitingRequests } = limits.caller
      if (account?.startsWith(ANONYMOUS_ACCOUNT) !== true) return { channels, waitingRequests }
      return { channels: half(config.maxChannels), waitingRequests: half(limits.process.requestsInFlight) }
    },
    maxAgentsOf: (caller) => agentShares(maxAgents, limits.caller.agents)(caller),
    maxTasksOf({ account }) {
      const isAddress = account?.startsWith(ANONYMOUS_ACCOUNT) === true && limits.caller.tasks > 0
      return isAddress ? half(config.connectors.mcp.tasks.max) : limits.caller.tasks
    },
    get limits() {
      return limits
    },
    setLimits(next) {
      admission.setLimits(next)
      limits = next
    },
    admission,
    trustedProxies: new TrustedProxies(config.trustedProxies, config.trustedProxyHeader),
    allowedHosts: config.http.allowedHosts,
    ...(config.publicUrl === '' ? {} : { publicHost: new URL(config.publicUrl).hostname }),
    refused,
    [Symbol.dispose]: () => refusals[Symbol.dispose](),
  }
}

/** The configuration file of a running server. */
export interface ConfigFile {
  readonly path: string
  /** Reads all sources again. @throws ServerError CONFIG_INVALID, listing every problem */
  readonly load: () => Promise<Config>
}

/**
 * Applies new limits when the configuration file changes. Other settings need a restart. An invalid
 * file changes nothing.
 */
export function watchLimits(file: ConfigFile, door: ServerFrontDoor, log: Logger, lookMs?: number): Disposable {
  const { path } = file
  return watchFiles([path], {
    parse: () => door.limits,
    reparse: async () => (await file.load()).limits,
    changed(limits) {
      if (isDeepStrictEqual(limits, door.limits)) return
      door.setLimits(limits)
      log.info({ file: path, limits }, 'limits reloaded')
    },
    refused(error) {
      const problems = error instanceof ServerError ? error.problems : [error.message]
      log.error({ file: path, problems }, 'limits not reloaded: the previous limits remain in force')
    },
    lookMs,
  })
}
