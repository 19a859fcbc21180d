/** The two addresses that the gateway listens at; each has a hapi server of its own in every generation. */
export type Address = 'main' | 'legacy'
