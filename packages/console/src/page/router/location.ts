import { Store, useStore } from '../api/store.ts'

/**
 * A place in the console: `#/channels/queues/orders?search=x`. Places are in the fragment, so the page
 * works behind a proxy that adds a prefix, and names of channels stay out of the logs of proxies.
 */
export interface Place {
  /** The decoded parts of the path. */
  readonly path: readonly string[]
  readonly query: Readonly<Record<string, string>>
}

function parse(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2)
  const parts = path.split('/').filter((part) => part !== '')
  return { path: parts.map(decoded), query: Object.fromEntries(new URLSearchParams(query)) }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

const place = new Store(parse(location.hash))
addEventListener('hashchange', () => place.set(parse(location.hash)))

export function usePlace(): Place {
  return useStore(place)
}

/** Returns the link to a place. Empty and undefined parameters are left out. */
export function href(path: readonly string[], query: Readonly<Record<string, string | undefined>> = {}): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') parameters.set(name, value)
  }
  const text = parameters.toString()
  return `#/${path.map(encodeURIComponent).join('/')}${text === '' ? '' : `?${text}`}`
}

export function go(path: readonly string[], query?: Readonly<Record<string, string | undefined>>): void {
  location.hash = href(path, query)
}

/** Changes parameters of the present place, as a filter does: without another entry in the history of the browser. */
export function setQuery(changes: Readonly<Record<string, string | undefined>>): void {
  const { path, query } = place.value
  history.replaceState(null, '', href(path, { ...query, ...changes }))
  place.set(parse(location.hash))
}
