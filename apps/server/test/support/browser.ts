import type { Browser, Page as BrowserPage } from 'playwright-core'
import { testServer } from '@signalbox/testkit/test-server'
import { onTestFinished } from 'vitest'

/** An answer that the browser received. */
export interface SeenResponse {
  readonly url: string
  readonly status: number
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** The kind of the request, such as `Preflight`. */
  readonly type: string
}

/** A page in a browser. */
export class Page {
  /** Every answer that the page, or the browser on its behalf, received. */
  readonly responses: SeenResponse[] = []
  readonly #page: BrowserPage

  constructor(page: BrowserPage) {
    this.#page = page
  }

  /** Opens a page and waits until it is loaded. It closes when the test is over. */
  static async open(browser: Browser, url: string): Promise<Page> {
    const opened = await browser.newPage()
    onTestFinished(() => opened.close())
    const page = new Page(opened)
    await page.#recordResponses()
    await opened.goto(url)
    return page
  }

  /** The driver's own events of responses leave out preflights. */
  async #recordResponses(): Promise<void> {
    const session = await this.#page.context().newCDPSession(this.#page)
    session.on('Network.responseReceived', ({ type, response: { url, status, headers } }) => {
      const lowerCase = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])
      this.responses.push({ type, url, status, headers: Object.fromEntries(lowerCase) })
    })
    await session.send('Network.enable')
  }

  /** Returns the result of a script in the page, which is the body of an async function. */
  run<Result>(script: string): Promise<Result> {
    return this.#page.evaluate(`(async () => { ${script} })()`)
  }
}

/** Serves one page on a free port, and returns the port. The host name of a request decides its origin. */
export async function servePage(html: string): Promise<number> {
  const server = await testServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end(html)
  })
  return server.port
}
