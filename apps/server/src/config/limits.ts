import { DEFAULT_LIMITS } from '@signalbox/http-kit'
import { derivedLimits } from '@signalbox/http-kit/internal'

import { count, group, integer } from './setting-types.ts'

const { caller, process } = DEFAULT_LIMITS

/** The documented defaults of limits in bytes: those of a process with more than enough memory. */
const most = derivedLimits(Infinity)

/** Returns the defaults of limits that derive from the memory that this process may use, by key of the setting. */
export function derivedDefaults(): ReadonlyMap<string, number> {
  const { callerBodyBytes, processBodyBytes, unreadBytes } = derivedLimits()
  return new Map([
    ['limits.caller.bodyBytes', callerBodyBytes],
    ['limits.process.bodyBytes', processBodyBytes],
    ['limits.process.unreadBytes', unreadBytes],
  ])
}

/** The limits of callers and of the process. docs/reference/limits.md explains the defaults. */
export const LIMITS = group('Limits', {
  caller: group('Limits of one caller: a ClientID. 0 means no limit', {
    requestsPerSecond: count(caller.requestsPerSecond, {
      description: 'Requests per second; bursts may have twice as many.',
    }),
    requestsInFlight: count(caller.requestsInFlight, {
      description: 'Concurrent requests, including waiting receives and calls, excluding streams.',
    }),
    bodyBytes: count(most.callerBodyBytes, {
      description:
        'Bytes of request bodies, replies and answers in memory. With little memory the default is less: half of that of the process.',
    }),
    streams: count(caller.streams, { description: 'Open streams and monitors.' }),
    channels: count(1_000, { description: 'Channels that the caller created.' }),
    agents: count(1_000, { description: 'Agents that the caller has registered.' }),
    runs: count(1_000, {
      description: 'Calls of agents in progress whose answers are kept, on each node; see `CONNECTORSA2_A_LOG`.',
    }),
    tasks: count(100, { description: 'Stored tasks. At the limit, calls do not become tasks.' }),
    waitingRequests: count(1_024, { description: 'Commands and queries that wait for a reply.' }),
  }),
  process: group(
    'Limits of the whole server. 0 means no limit. Without authentication a network address may use half of each',
    {
      requestsInFlight: count(process.requestsInFlight, { description: 'Concurrent requests.' }),
      bodyBytes: count(most.processBodyBytes, {
        description:
          'Bytes of request bodies, replies and answers in memory. With little memory the default is less: a quarter of the memory that the process may use.',
      }),
      streams: count(process.streams, { description: 'Open streams and monitors.' }),
      unreadBytes: count(most.unreadBytes, {
        description:
          'Bytes of answers and streams that clients have not read. One caller may have half. With little memory the default is less: an eighth of the memory that the process may use.',
      }),
      memoryPercent: integer(process.memoryPercent, 0, 100, {
        description:
          'Above this percentage of the heap limit, or of the memory of the container or machine, bodies over 64 KiB, calls of agents and new streams are refused.',
      }),
    },
  ),
})
