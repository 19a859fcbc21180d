export interface TracingSettings {
	/** Null: none, unless the environment names one. */
	endpoint: string | null
	/** 0 to 1. */
	sample_ratio: number
	content: boolean
}
