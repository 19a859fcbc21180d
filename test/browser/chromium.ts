/** The browser of this machine. */
import { existsSync } from 'node:fs'
import { chromium } from 'playwright-core'
import type { Browser } from 'playwright-core'

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const found = places.find((path) => existsSync(path))

/** Why tests with a browser are skipped, or false. With `SVC_TEST_BROWSER=required` they fail instead. */
export const noBrowser: string | false =
	found === undefined &&
	process.env.SVC_TEST_BROWSER !== 'required' &&
	`there is no Chromium: none of ${places.join(', ')}`

/** `names`: host names that resolve to 127.0.0.1. */
export async function startBrowser(names: readonly string[]): Promise<Browser> {
	if (found === undefined)
		throw new Error(`SVC_TEST_BROWSER=required, and there is no Chromium; install Debian's package "chromium"`)
	// Playwright starts it without Chromium's own sandbox, which root and most containers cannot have: the pages are ours.
	const rules = names.map((name) => `MAP ${name} 127.0.0.1`).join(', ')
	return chromium.launch({ executablePath: found, timeout: 60_000, args: [`--host-resolver-rules=${rules}`] })
}
