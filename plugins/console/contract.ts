/**
 * A page that a plugin adds to the console, in a form that needs no import:
 *
 *     ctx.extend('console', { title: 'Tides', module: await readFile(new URL('./page.js', import.meta.url), 'utf8') })
 *
 * One for each plugin.
 */
export interface ConsolePage {
	/** In the navigation, and above the page: 1 to 24 characters. */
	title: string
	/**
	 * A JavaScript module as text, at most 512 KiB: it can import nothing. Anyone who reaches the gateway can read it. It exports
	 * `show(place, console)`, which fills the element `place`; an error that it throws is shown on the page.
	 */
	module: string
}

export type { ConsoleAccess } from './access.ts'

declare module '../../core/plugin.ts' {
	interface Extensions {
		console: ConsolePage
	}
}
