// Builds the page for the published package.
import { buildPage } from '../src/build-page.ts'

await buildPage()
