import { startThread } from '@signalbox/broker-core/internal'

import type { Document } from 'yaml'
import { isCollection, parseDocument, visit } from 'yaml'

/** The value of a YAML text, or the first line of its error. */
export type ParsedYaml = { readonly value: unknown } | { readonly problem: string }

/**
 * The largest text that is parsed inline, in characters. Parsing it takes about as long as starting
 * a thread.
 */
const MAX_INLINE = 16_384

/** Parses YAML, or JSON, which is a subset of YAML. 1 MiB takes about a second. */
export function parseYaml(text: string): ParsedYaml {
  try {
    const document = parseDocument(text, { prettyErrors: true, logLevel: 'error' })
    const [error] = document.errors
    if (error) throw error
    refuseKeysOfParts(document)
    // Throws for an alias without an anchor, for aliases that expand excessively, and for deep
    // nesting.
    return { value: document.toJS({ maxAliasCount: 100 }) }
  } catch (thrown) {
    return { problem: (thrown instanceof Error ? thrown.message : String(thrown)).split('\n')[0] ?? '' }
  }
}

/**
 * Refuses a key that is a list or a map: no file has one, and to print one as text takes long, for a line of 500 question
 * marks almost a minute.
 */
function refuseKeysOfParts(document: Document): void {
  visit(document, {
    Pair(_, { key }) {
      if (isCollection(key)) throw new Error('a key is a list or a map; it must be a text')
    },
  })
}

/** Parses YAML without blocking the event loop: a long text is parsed in a separate thread. */
export async function parseYamlAside(text: string): Promise<ParsedYaml> {
  if (text.length <= MAX_INLINE) return parseYaml(text)
  const thread = startThread('yaml-thread', import.meta.url, { name: 'signalbox-yaml', workerData: text })
  thread.unref()
  const parsed = Promise.withResolvers<ParsedYaml>()
  thread.once('message', parsed.resolve)
  thread.once('error', parsed.reject)
  try {
    return await parsed.promise
  } finally {
    await thread.terminate()
  }
}
