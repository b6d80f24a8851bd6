import { Worker } from 'node:worker_threads'

import { parseDocument } from 'yaml'

/** What a YAML text holds, or the first line of what is wrong with it. */
export type ParsedYaml = { readonly value: unknown } | { readonly problem: string }

/** Texts up to so many characters are parsed in about the time that it takes to start a thread. */
const MAX_INLINE = 16_384

/** Parses a text of YAML, or of JSON, which is YAML too. 1 MiB takes about a second. */
export function parseYaml(text: string): ParsedYaml {
  try {
    const document = parseDocument(text, { prettyErrors: true, logLevel: 'error' })
    const [error] = document.errors
    if (error) throw error
    // Throws for an alias without an anchor, for aliases that would make far more than the text, and for deep nesting.
    return { value: document.toJS({ maxAliasCount: 100 }) }
  } catch (thrown) {
    return { problem: (thrown instanceof Error ? thrown.message : String(thrown)).split('\n')[0] ?? '' }
  }
}

/** Does the same in a thread of its own where the text is long, so that the event loop goes on. */
export async function parseYamlAside(text: string): Promise<ParsedYaml> {
  if (text.length <= MAX_INLINE) return parseYaml(text)
  const source = import.meta.url.endsWith('.ts')
  const thread = new Worker(new URL(source ? './yaml-thread.ts' : './yaml-thread.js', import.meta.url), {
    name: 'signalbox-yaml',
    workerData: text,
    execArgv: [],
  })
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
