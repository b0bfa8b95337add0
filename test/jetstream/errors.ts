/** The errors of the API, word for word. */
export class ApiError extends Error {
  readonly code: number;
  readonly errCode: number;

  constructor(code: number, errCode: number, description: string) {
    super(description);
    this.code = code;
    this.errCode = errCode;
  }

  toJSON(): object {
    return { code: this.code, err_code: this.errCode, description: this.message };
  }
}

export const badRequest = (): ApiError => new ApiError(400, 10003, "bad request");
export const invalidJson = (): ApiError => new ApiError(400, 10025, "invalid JSON");
export const streamNotFound = (): ApiError => new ApiError(404, 10059, "stream not found");
export const consumerNotFound = (): ApiError => new ApiError(404, 10014, "consumer not found");
export const noMessage = (): ApiError => new ApiError(404, 10037, "no message found");
export const wrongLastSequence = (last: number): ApiError => new ApiError(400, 10071, `wrong last sequence: ${last}`);
