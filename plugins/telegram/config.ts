export interface TelegramConfig {
	/** Address of the Bot API: Telegram's own server, or one that the operator runs. */
	api_root: string
}

export const API_ROOT = 'https://api.telegram.org'

/** The form of a bot's token, which becomes a part of the address. */
export const TOKEN = /^[A-Za-z0-9:_-]{1,256}$/
