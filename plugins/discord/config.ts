export interface DiscordConfig {
	/** Address of the REST API, without its version; it returns the gateway's address. */
	api_root: string
}

export const API_ROOT = 'https://discord.com/api'

/** No token has white space or other characters than these. */
export const TOKEN = /^[\x21-\x7e]{1,1000}$/
