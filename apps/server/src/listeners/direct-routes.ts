import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

import type { NodeHandler } from '@signalbox/http-kit'

/** Called for each direct request before its handler. */
type Before = (request: IncomingMessage, response: ServerResponse) => void

/**
 * Routes that tools and agents call. Their POST requests skip the web framework, which would take a fifth of the time of
 * a cheap call and adds nothing for them: its hooks serve browsers, which send the header Origin. All other requests,
 * such as those of browsers or with an unusual path, go to the framework, where the same connectors answer.
 */
export class DirectRoutes {
  readonly #before: readonly Before[]
  readonly #paths = new Map<string, NodeHandler>()
  readonly #prefixes: (readonly [prefix: string, handler: NodeHandler])[] = []

  constructor(before: readonly Before[]) {
    this.#before = before
  }

  /** Adds a path. One that ends in `/` stands for every path that begins with it. */
  add(path: string, handler: NodeHandler): void {
    if (path.endsWith('/')) this.#prefixes.push([path, handler])
    else this.#paths.set(path, handler)
  }

  /** Returns the listener for all requests. `framework` gets those that no direct route takes. */
  listener(framework: RequestListener): RequestListener {
    return (request, response) => {
      const handler =
        request.method === 'POST' && request.headers.origin === undefined ? this.#find(request.url) : undefined
      if (handler === undefined) {
        framework(request, response)
        return
      }
      for (const before of this.#before) before(request, response)
      handler(request, response)
    }
  }

  #find(url = ''): NodeHandler | undefined {
    const exact = this.#paths.get(url)
    if (exact !== undefined) return exact
    for (const [prefix, handler] of this.#prefixes)
      if (url.startsWith(prefix)) return isPlain(url) ? handler : undefined
    return undefined
  }
}

/** Returns false for a path that the framework could read in another way than the connectors. */
function isPlain(url: string): boolean {
  return !url.includes('%') && !url.includes('//') && !url.includes(';') && !url.includes('#')
}
