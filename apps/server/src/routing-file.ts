import { readFileSync } from 'node:fs'

import type { BrokerObserver, RoutingTable } from '@signalbox/broker-core'
import { parseRoutingTable, Routing, RoutingTableError } from '@signalbox/broker-core'

import { ServerError } from './errors.ts'
import type { Logger } from './log.ts'

/**
 * How often the file is read, in milliseconds. Reading a small file sees what watching misses: files that are mounted,
 * replaced, or changed before the watch began.
 */
const LOOK_MS = 1_000

/** The routing table of a file: read at the start, and again whenever the file changes. */
export interface RoutingFile extends Disposable {
  readonly routing: Routing
  /** Logs each way in which a rule fails once for each table; the metrics count every time. */
  readonly observer: BrokerObserver
}

/**
 * Opens the routing table. A file that turns bad later is reported, and the table that was good stays in force.
 * @throws ServerError CONFIG_INVALID naming every problem of the file
 */
export function openRoutingFile(file: string, log: Logger, lookMs = LOOK_MS): RoutingFile {
  let text = read(file)
  const routing = new Routing(parse(file, text))
  const told = new Set<string>()
  // What the last look found wrong, so that it is said once.
  let reported = ''

  const reload = (): void => {
    try {
      const changed = read(file)
      if (changed === text) return
      text = changed
      const table = parse(file, changed)
      reported = ''
      routing.replace(table)
      told.clear()
      log.info({ file, rules: table.rules.length }, 'routing table reloaded')
    } catch (error) {
      if (!(error instanceof ServerError)) throw error
      const problems = error.problems.join('\n')
      if (problems !== reported) {
        log.error({ file, problems: error.problems }, 'routing table not reloaded: the one before stays in force')
      }
      reported = problems
    }
  }
  const timer = setInterval(reload, lookMs)
  timer.unref()

  return {
    routing,
    observer: {
      routingFailed({ rule, reason, from, to, detail }) {
        const key = `${rule} ${reason}`
        if (told.has(key)) return
        told.add(key)
        log.warn(
          { entry: rule, reason, from, to, detail },
          'routing: a copy was not made; further ones are counted only',
        )
      },
    },
    [Symbol.dispose]: () => clearInterval(timer),
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
    throw problem([`cannot read ${JSON.stringify(file)} (${reason}); allowed: a JSON file with a routing table`], error)
  }
}

function parse(file: string, text: string): RoutingTable {
  try {
    return parseRoutingTable(JSON.parse(text))
  } catch (error) {
    if (error instanceof RoutingTableError)
      throw problem(
        error.problems.map((one) => `${file}: ${one}`),
        error,
      )
    throw problem([`${file} is not JSON; allowed: an array of {key, keyType, routes}`], error)
  }
}

function problem(problems: readonly string[], cause: unknown): ServerError {
  return new ServerError(
    'CONFIG_INVALID',
    problems.map((one) => `routing.file: ${one}`),
    { cause },
  )
}
