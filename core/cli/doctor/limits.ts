/** How long the doctor waits, in ms. */
export interface DoctorLimits {
	/** For one check. */
	check: number
	/** For one request. */
	request: number
	/** For the code of one third-party plugin, without the start of the process that loads it. */
	plugin: number
	/** For the code of all third-party plugins together. */
	plugins: number
	/** For the checks of a third-party plugin: to load them, and to run them. */
	thirdParty: number
	/** For the pages of the data file; those that are left are not looked at. */
	store: number
}

/** All of them are below that of a check. */
export const usualLimits: Readonly<DoctorLimits> = {
	check: 15_000,
	request: 10_000,
	plugin: 3_000,
	plugins: 12_000,
	thirdParty: 10_000,
	store: 1_500,
}
