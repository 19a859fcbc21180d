export interface TracingSettings {
	/** Null: the address in the environment, or none. */
	endpoint: string | null
	/** 0 to 1. */
	sample_ratio: number
	content: boolean
}

declare module '../../config/types.ts' {
	interface Config {
		tracing: TracingSettings
	}
}
