import { DEFAULT_LIMITS } from '@signalbox/http-kit'

import { count, group, integer } from './setting-types.ts'

const { caller, process } = DEFAULT_LIMITS

/** The limits of callers and of the process. docs/reference/limits.md explains the defaults. */
export const LIMITS = group('Limits', {
  caller: group('Limits of one caller: a ClientID. 0 is no limit', {
    requestsPerSecond: count(caller.requestsPerSecond, {
      description: 'Requests per second; bursts may have twice as many.',
    }),
    requestsInFlight: count(caller.requestsInFlight, {
      description: 'Concurrent requests, including waiting receives and calls, excluding streams.',
    }),
    bodyBytes: count(caller.bodyBytes, {
      description: 'Bytes of request bodies in memory, including those of waiting commands and queries.',
    }),
    streams: count(caller.streams, { description: 'Open streams and monitors.' }),
    channels: count(1_000, { description: 'Channels that the caller created.' }),
    agents: count(1_000, { description: 'Agents that the caller has registered.' }),
    tasks: count(100, { description: 'Stored tasks. At the limit, calls do not become tasks.' }),
    waitingRequests: count(1_024, { description: 'Commands and queries that wait for a reply.' }),
  }),
  process: group(
    'Limits of the whole server. 0 is no limit. Without authentication a network address may use half of each',
    {
      requestsInFlight: count(process.requestsInFlight, { description: 'Concurrent requests.' }),
      bodyBytes: count(process.bodyBytes, {
        description: 'Bytes of request bodies in memory. Reduced to a quarter of the heap limit, unless it is 0.',
      }),
      streams: count(process.streams, { description: 'Open streams and monitors.' }),
      unreadBytes: count(process.unreadBytes, {
        description: 'Bytes of answers and streams that clients have not read. One caller may have half.',
      }),
      memoryPercent: integer(process.memoryPercent, 0, 100, {
        description:
          "Above this percentage of the heap limit, or of the container's memory, bodies over 64 KiB and new streams are refused.",
      }),
    },
  ),
})
