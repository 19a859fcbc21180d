/**
 * A page that a plugin adds to the console, at most one per plugin. A plugin needs no import for it:
 *
 *     ctx.extend('console', { title: 'Tides', module: await readFile(new URL('./page.js', import.meta.url), 'utf8') })
 */
export interface ConsolePage {
	/** Shown in the navigation and above the page: 1 to 24 characters. */
	title: string
	/**
	 * A JavaScript module as text, at most 512 KiB, without imports. Anyone who reaches the gateway can read it. It exports
	 * `show(place, console)`, which fills the element `place`. If `show` throws, the page shows the error.
	 */
	module: string
}

export type { ConsoleAccess } from './access.ts'

declare module '../../core/plugin.ts' {
	interface Extensions {
		console: ConsolePage
	}
}
