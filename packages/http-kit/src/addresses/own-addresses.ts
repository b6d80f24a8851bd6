import { networkInterfaces } from 'node:os'
import { isIP } from 'node:net'

import { AddressList } from './address-list.ts'
import type { IpAddress } from './ip-address.ts'
import { ipAddress } from './ip-address.ts'

/** An address on which the server itself accepts connections. */
export interface ListeningAddress {
  /** An address; `0.0.0.0`, `::` and names mean every address of the machine. */
  readonly host: string
  readonly port: number
}

const LOOPBACK = new AddressList('loopback', ['127.0.0.0/8', '::1'])
const UNSPECIFIED: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

/** The addresses at which the server would call itself. */
export class OwnAddresses {
  readonly #listening: () => readonly ListeningAddress[]

  /** @param listening Called for each check: listeners open after agents are known. */
  constructor(listening: () => readonly ListeningAddress[]) {
    this.#listening = listening
  }

  /** Returns true when a connection to this address would reach the server itself. */
  has(address: IpAddress, port: number): boolean {
    return this.#listening().some(({ host, port: own }) => {
      if (own !== port) return false
      const texts = [address.text, ...address.embedded]
      if (isIP(host) === 0 || UNSPECIFIED.has(host)) return texts.some(isOfThisMachine)
      const bound = ipAddress(host)
      return texts.some((text) => text === bound?.text)
    })
  }
}

function isOfThisMachine(text: string): boolean {
  const address = ipAddress(text)
  if (address !== undefined && LOOPBACK.hasAddress(address)) return true
  return Object.values(networkInterfaces()).some((each) => each?.some((own) => own.address === text) === true)
}

/** Returns the port of a url. */
export function portOf({ port, protocol }: Pick<URL, 'port' | 'protocol'>): number {
  if (port !== '') return Number(port)
  return protocol === 'https:' ? 443 : 80
}
