import type { BrokerObserver } from '@signalbox/broker-core'
import { parseRoutingTable, Routing, RoutingTableError } from '@signalbox/broker-core'
import { parseRoutingTableSteps } from '@signalbox/broker-core/internal'
import { watchFiles } from '@signalbox/http-kit'

import { ServerError } from '../errors.ts'
import { inSlices } from '../files/in-slices.ts'
import type { Logger } from '../logging/logger.ts'

/** The routing table of a file: read at the start, and again after each change of the file. */
export interface RoutingFile extends Disposable {
  readonly routing: Routing
  /** Logs each kind of failure of a rule once for each table; the metrics count every failure. */
  readonly observer: BrokerObserver
}

/**
 * Opens the routing table. If the file becomes invalid later, that is reported and the last valid
 * table remains in force.
 * @throws ServerError CONFIG_INVALID, listing every problem of the file
 */
export function openRoutingFile(file: string, log: Logger, lookMs?: number): RoutingFile {
  const reported = new Set<string>()
  const routing = new Routing()
  const watched = stopTheStart(file, () =>
    watchFiles([file], {
      parse: ([text = '']) => parseRoutingTable(jsonOf(text)),
      reparse: async ([text = '']) => inSlices(parseRoutingTableSteps(jsonOf(text))),
      changed(table) {
        routing.replace(table)
        reported.clear()
        log.info({ file, rules: table.rules.length }, 'routing table reloaded')
      },
      refused(error) {
        log.error(
          { file, problems: problemsOf(file, error) },
          'routing table not reloaded: the previous table remains in force',
        )
      },
      lookMs,
    }),
  )
  routing.replace(watched.value)

  return {
    routing,
    observer: {
      routingFailed({ rule, reason, from, to, detail }) {
        const key = `${rule} ${reason}`
        if (reported.has(key)) return
        reported.add(key)
        log.warn({ entry: rule, reason, from, to, detail }, 'routing copy failed; further failures are only counted')
      },
    },
    [Symbol.dispose]: () => watched[Symbol.dispose](),
  }
}

/** @throws RoutingTableError */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new RoutingTableError(['it is not JSON; allowed: an array of {key, keyType, routes}'])
  }
}

function stopTheStart<T>(file: string, open: () => T): T {
  try {
    return open()
  } catch (error) {
    throw new ServerError('CONFIG_INVALID', problemsOf(file, error), { cause: error })
  }
}

function problemsOf(file: string, error: unknown): readonly string[] {
  if (error instanceof RoutingTableError) return error.problems.map((problem) => `routing.file: ${file}: ${problem}`)
  const reason = error instanceof Error ? error.message : String(error)
  return [`routing.file: ${reason}; allowed: a JSON file with a routing table`]
}
