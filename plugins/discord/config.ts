export interface DiscordConfig {
	/** Where the REST interface is, without its version; the gateway's address comes from there. */
	api_root: string
}
