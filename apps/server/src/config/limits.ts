import { DEFAULT_LIMITS } from '@signalbox/http-kit'

import { count, group, integer } from './setting-types.ts'

const { caller, process } = DEFAULT_LIMITS

/** What callers may hold at a time: docs/reference/limits.md says what each default means. */
export const LIMITS = group('Limits', {
  caller: group('Limits of one caller: a ClientID. 0 is no limit', {
    requestsPerSecond: count(caller.requestsPerSecond, {
      description: 'Requests a second; twice as many may come at once.',
    }),
    requestsInFlight: count(caller.requestsInFlight, {
      description: 'Requests under way at a time, waiting receives and calls included, streams not.',
    }),
    bodyBytes: count(caller.bodyBytes, {
      description: 'Bytes of request bodies in memory, those of waiting commands and queries included.',
    }),
    streams: count(caller.streams, { description: 'Open streams and monitors.' }),
    channels: count(1_000, { description: 'Channels that exist because the caller was the first to use them.' }),
    agents: count(1_000, { description: 'Agents that the caller has registered.' }),
    waitingRequests: count(1_024, { description: 'Commands and queries that wait for their answer.' }),
  }),
  process: group(
    'Limits of the whole server. 0 is no limit. Without authentication a network address may take half of each',
    {
      requestsInFlight: count(process.requestsInFlight, { description: 'Requests under way at a time.' }),
      bodyBytes: count(process.bodyBytes, {
        description: 'Bytes of request bodies in memory; never more than a quarter of the heap limit, unless it is 0.',
      }),
      streams: count(process.streams, { description: 'Open streams and monitors.' }),
      unreadBytes: count(process.unreadBytes, {
        description: 'Bytes of answers and streams that clients have not taken yet. One caller may have half.',
      }),
      memoryPercent: integer(process.memoryPercent, 0, 100, {
        description:
          "Above this percentage of the heap limit, or of the container's memory, bodies over 64 KiB and new streams are refused.",
      }),
    },
  ),
})
