import type { Answered } from '../../core/http.ts'
import type { Exposition } from './exposition.ts'

export interface Metrics {
	/** Counts a request whose answer has gone. */
	count(answered: Answered): void
	/** All numbers as they are now, in the format that `accept`, a header, asks for. */
	scrape(accept: string): Promise<Exposition>
}

declare module '../../core/plugin.ts' {
	interface Services {
		metrics: Metrics
	}
}
